// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/cores.hpp"

#include <hwloc.h>

#include <algorithm>
#include <memory>
#include <regex>
#include <type_traits>

#include "collectives/schedule/errors.hpp"

namespace baton::doctor {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

/// A topology that is not loaded yet. It will have the cores that this process may not use, too.
Topology empty_topology() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) throw SystemError("hwloc cannot describe a host");
  Topology topology(made);
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return topology;
}

void load(hwloc_topology_t topology) {
  if (hwloc_topology_load(topology) != 0) throw SystemError("hwloc cannot read the cores of a host");
}

/// The lowest core of `object`; -1 for no object.
int lowest_in(hwloc_obj_t object) { return object == nullptr ? -1 : hwloc_bitmap_first(object->cpuset); }

/// The cache that is shared by most cores, of those that `core` uses.
hwloc_obj_t last_cache(hwloc_obj_t core) {
  hwloc_obj_t last = nullptr;
  for (hwloc_obj_t one = core; one != nullptr; one = one->parent)
    if (hwloc_obj_type_is_cache(one->type) != 0) last = one;
  return last;
}

/// `xml` without the notes that could tell which host it is, such as its name and serial numbers.
std::string anonymous(const std::string& xml) {
  static const std::regex notes(R"(\s*<info name="(?!CPU)[^>]*>)");
  return std::regex_replace(xml, notes, "");
}

}  // namespace

std::string host_xml() {
  const Topology topology = empty_topology();
  // These start drivers of GPUs, or look for a display. Some hwloc has none of them.
  for (const char* slow : {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(topology.get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow);
  load(topology.get());
  char* text = nullptr;
  int length = 0;
  if (hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, 0) != 0)
    throw SystemError("hwloc cannot write the cores of this host");
  std::string xml(text);
  hwloc_free_xmlbuffer(topology.get(), text);
  return anonymous(xml);
}

std::vector<Core> cores_in(const std::string& xml) {
  const Topology loaded = empty_topology();
  hwloc_topology_t topology = loaded.get();
  if (hwloc_topology_set_xmlbuffer(topology, xml.c_str(), static_cast<int>(xml.size() + 1)) != 0)
    throw SystemError("this is no description of a host by hwloc");
  load(topology);
  std::vector<Core> cores;
  for (hwloc_obj_t one = nullptr;
       (one = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, one)) != nullptr;) {
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, one);
    cores.push_back({.number = static_cast<int>(one->os_index),
                     .physical = lowest_in(hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, one)),
                     .package = package == nullptr ? -1 : static_cast<int>(package->os_index),
                     .cache = lowest_in(last_cache(one)),
                     .node = hwloc_bitmap_first(one->nodeset)});
  }
  std::sort(cores.begin(), cores.end(), [](const Core& a, const Core& b) { return a.number < b.number; });
  return cores;
}

}  // namespace baton::doctor
