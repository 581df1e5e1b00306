// protoc with the C++ generator alone.
#include <google/protobuf/compiler/command_line_interface.h>
#include <google/protobuf/compiler/cpp/generator.h>

int main(int argc, char* argv[]) {
  google::protobuf::compiler::CommandLineInterface cli;
  google::protobuf::compiler::cpp::CppGenerator cpp;
  cli.RegisterGenerator("--cpp_out", "--cpp_opt", &cpp, "C++ header and source");
  return cli.Run(argc, argv);
}
