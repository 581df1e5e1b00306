#include <cstdio>
#include <fstream>

#include "commands.h"
#include "placement/report.h"

namespace epona::cli {

int command_explain(const std::vector<std::string>& words) {
  Args args = parse(words, session_specs({{"html", true}, {"rows", true}}));
  std::string path = model_argument(args);
  SessionOptions options = session_options(args);
  options.dim_by_symbol = dims_of(args);
  auto session = [&] {
    Progress progress("loading " + path);
    return open_session(path, options);
  }();
  PlacementReport report = session->placement_report();
  report.model = path;
  if (std::string file = args.get("html"); !file.empty()) {
    std::ofstream out(file);
    out << to_html(report);
    if (!out.flush()) fail(Code::fail, "cannot write ", file);
    std::fprintf(args.has("json") ? stderr : stdout, "wrote %s\n", file.c_str());
  }
  if (args.has("json"))
    std::printf("%s\n", to_json(report).c_str());
  else if (!args.has("html"))
    std::printf("%s", to_table(report, static_cast<size_t>(args.number("rows", 1000000, 1))).c_str());
  return 0;
}

}  // namespace epona::cli
