// SPDX-License-Identifier: Apache-2.0
// Measures the page that it stands in, and tells the page around it what is wrong, as a list of lines.
"use strict";

const found = [];
addEventListener("error", (event) => found.push(`script error: ${event.message}`));
addEventListener("unhandledrejection", (event) => found.push(`script error: ${event.reason}`));
const complain = console.error;
console.error = (...words) => { found.push(`console.error: ${words.join(" ")}`); complain(...words); };

function look(before) {
  addEventListener("load", () => {
    try { before(); } catch (error) { found.push(`script error: ${error.message}`); }
    setTimeout(() => { measure(); parent.postMessage(found, "*"); }, 100);
  });
}

function measure() {
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    found.push(`the page is ${root.scrollWidth} pixels wide, the window ${innerWidth}`);
  }
  const texts = textsOfPage().filter(inSight);
  for (const one of texts) cut(one);
  overlapping(texts);
  for (const one of texts) covered(one);
}

// Every line of visible text: { node, words, box } with the box a little smaller than its letters' cells.
function textsOfPage() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.data.trim() || !seen(node.parentElement)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = range.getClientRects();
    if (lines.length > 3 && node.data.trim().length < 3 * lines.length) {
      found.push(`${words(node)} is squeezed into ${lines.length} lines`);
    }
    for (const box of lines) {
      if (box.width > 1 && box.height > 1) texts.push({ node, words: words(node), box: smaller(box) });
    }
  }
  return texts;
}

function seen(element) {
  if (["SCRIPT", "STYLE", "TEMPLATE", "OPTION", "title"].includes(element.tagName)) return false;
  return element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
}

const words = (node) => `"${node.data.trim().replace(/\s+/g, " ").slice(0, 50)}"`;

function smaller(box) {
  const height = 0.2 * box.height;
  return { left: box.left + 1, right: box.right - 1, top: box.top + height, bottom: box.bottom - height };
}

// Text is cut if it leaves the page, or an ancestor that hides what leaves it. What scrolls shows all of it.
function cut({ node, words, box }) {
  if (box.left < -1 || box.top < -1) found.push(`${words} leaves the page`);
  for (let at = node.parentElement; at && at !== document.body; at = at.parentElement) {
    const style = getComputedStyle(at);
    const of = at.getBoundingClientRect();
    const inline = style.display === "inline" && at.namespaceURI.endsWith("xhtml");
    const clips = (overflow) => !inline && ["hidden", "clip"].includes(overflow);
    if (clips(style.overflowX) && (box.left < of.left - 1 || box.right > of.right + 1) ||
        clips(style.overflowY) && (box.top < of.top - 1 || box.bottom > of.bottom + 1)) {
      found.push(`${words} is cut by <${at.tagName.toLowerCase()}>`);
    }
    if (["auto", "scroll"].includes(style.overflowX) || ["auto", "scroll"].includes(style.overflowY)) return;
  }
}

function overlapping(texts) {
  const sorted = [...texts].sort((a, b) => a.box.top - b.box.top);
  sorted.forEach((a, index) => {
    for (let next = index + 1; next < sorted.length && sorted[next].box.top < a.box.bottom - 1; ++next) {
      const b = sorted[next];
      if (a.node !== b.node && Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left) > 1 ) {
        found.push(`${a.words} overlaps ${b.words}`);
      }
    }
  });
}

// False for what lies outside the box of something that scrolls: whoever scrolls sees it.
function inSight({ node, box }) {
  const of = windowAround(node.parentElement);
  return !of || (box.right <= of.right && box.left >= of.left && box.bottom <= of.bottom && box.top >= of.top);
}

const windows = new Map();  // the box of what scrolls around an element, or null

function windowAround(element) {
  if (!element || element === document.body) return null;
  if (!windows.has(element)) {
    const { overflowX, overflowY } = getComputedStyle(element);
    const scrolls = [overflowX, overflowY].some((overflow) => ["auto", "scroll"].includes(overflow));
    windows.set(element, scrolls ? element.getBoundingClientRect() : windowAround(element.parentElement));
  }
  return windows.get(element);
}

// Looks at points all over the text: whatever is above it there, or a line or an edge of a figure behind it, is told.
function covered(text) {
  const { node, words, box } = text;
  const behind = new Map();
  let points = 0;
  const drawn = node.parentElement.closest("svg");
  for (const x of drawn ? [0.1, 0.3, 0.5, 0.7, 0.9] : [0.1, 0.9]) {
    for (const y of drawn ? [0.3, 0.7] : [0.5]) {
      const stack = document.elementsFromPoint(box.left + (box.right - box.left) * x,
                                               box.top + (box.bottom - box.top) * y);
      if (!stack.length) continue;
      ++points;
      if (hides(stack[0], node.parentElement) && stack.includes(node.parentElement)) {
        found.push(`${words} is under <${stack[0].tagName.toLowerCase()} class="${classOf(stack[0])}">`);
        return;
      }
      for (const element of stack.slice(1)) {
        if (element instanceof SVGGeometryElement) behind.set(element, (behind.get(element) || 0) + 1);
      }
    }
  }
  for (const [element, times] of behind) {
    if (times < points && element.closest("svg") === drawn &&
        !element.closest(".grid, .leader")) {
      found.push(`${words} is crossed by <${element.tagName}>`);
      return;
    }
  }
}

// True if an element above hides text of another: it is not around the text, and no word within the text's line.
function hides(above, owner) {
  if (above.contains(owner)) return false;
  return !owner.contains(above) || getComputedStyle(above).display !== "inline";
}

const classOf = (element) => element.getAttribute("class") || "";
