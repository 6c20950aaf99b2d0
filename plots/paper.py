# SPDX-License-Identifier: Apache-2.0
"""The tables and figures of the papers, published, simulated and measured cells side by side, as one page.

Writes index.html, which stands alone, paper.md, and one CSV a table. Numbers come from records and from
results/paper/ alone; a blank cell was neither published, simulated nor measured.
"""

import argparse
import pathlib
import sys

import paper_exchange
import paper_html
import paper_lasp2
import paper_layers
import paper_operator
import paper_page
import paper_predicted
import paper_prediction
import paper_records
import paper_scaling
import paper_summary
import paper_table2
import paper_volumes
import paper_winners
import results
import tables

try:
    import paper_figures
except ImportError:  # without matplotlib there are tables alone
    paper_figures = None

SECTIONS = (paper_summary.section, paper_table2.section, paper_prediction.section, paper_exchange.section,
            paper_operator.section, paper_layers.section, paper_volumes.section, paper_lasp2.section,
            paper_scaling.section, paper_winners.section, paper_predicted.section)


def main():
    options = parse_arguments()
    sources = paper_records.load(options.simulated, options.machines, options.published)
    page = made(sources)
    options.out.mkdir(parents=True, exist_ok=True)
    for table in paper_page.blocks(page, paper_page.Table):
        paper_page.save_csv(options.out, table)
    pictures = paper_figures.draw_all(page, options.out) if paper_figures else {}
    (options.out / "paper.md").write_text(paper_page.markdown(page, pictures), encoding="utf-8")
    (options.out / "index.html").write_text(paper_html.page(page, pictures), encoding="utf-8")
    print(f"Page: {options.out}/index.html; the same as {options.out}/paper.md and one CSV a table")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulated", type=pathlib.Path, required=True, metavar="DIR",
                        help="records of paper_simulations.py")
    parser.add_argument("--machines", type=pathlib.Path, default=paper_records.RESULTS, metavar="DIR",
                        help="a folder of records a machine (default: results/)")
    parser.add_argument("--published", type=pathlib.Path, default=tables.PAPER, metavar="DIR")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    return parser.parse_args()


def made(sources):
    return paper_page.Page("The papers' tables, published, simulated and measured", lead(sources),
                           [section(sources) for section in SECTIONS])


def lead(sources):
    topologies = sorted({record["topology"] for record in sources.simulated})
    commits = sorted({record["commit"] for record in sources.simulated})
    newest = max(record["time"] for record in sources.simulated)
    machines = [machine for machine, records in sources.measured.items() if records]
    return [
        "Sequence parallelism of linear attention as its papers measured it, beside what this suite "
        "simulates of the same machines and what it measured on machines at hand. Every cell says which of "
        "these it is, and no number mixes them; ratios of one to another are marked as derived.",
        f"**Simulated** cells stand on {', '.join(f'`{name}`' for name in topologies)}: `topologies/*.json` "
        "name the source of every figure, and none is fitted to a table on this page except in `fitted-*`, "
        "which the test of prediction makes. They come of the very schedules that real executors run, "
        "verified on small real data first, in virtual time: deterministic, one round. Commit "
        f"{', '.join(commits)}, {newest[:10]}.",
        "**Measured** cells are medians of rounds, each the slowest rank's, from the records of "
        f"{', '.join(f'`results/{name}`' for name in machines) or 'no machine yet'}; their rows name "
        "executor, commit and day; so are those of other projects' programs, whose rows name them. **Published** cells are copied from `results/paper/*.csv`, which say "
        "where each was read: those of ZeCO are second-hand. A cell that nobody published is blank."]


if __name__ == "__main__":
    try:
        main()
    except results.ResultsError as error:
        sys.exit(f"paper: {error}")
