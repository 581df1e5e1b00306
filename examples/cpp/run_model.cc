// run_model MODEL: feeds 0, 1, 2, ... over the number of elements to the first input, prints every float output.
#include <epona/epona.h>

#include <iostream>
#include <vector>

int main(int argc, char* argv[]) try {
  if (argc != 2) {
    std::cerr << "usage: run_model MODEL\n";
    return 2;
  }
  epona::Session session(argv[1]);
  std::vector<int64_t> shape = session.inputs().at(0).shape;
  size_t count = 1;
  for (int64_t& dim : shape) count *= static_cast<size_t>(dim = dim < 0 ? 1 : dim);
  std::vector<float> elements(count);
  for (size_t i = 0; i < count; ++i) elements[i] = static_cast<float>(i) / static_cast<float>(count);

  epona::Value input = epona::Value::view(std::span(elements), shape);
  for (const epona::Value& output : session.run({input}))
    for (float value : output.data<float>()) std::cout << value << '\n';
} catch (const epona::Error& error) {
  std::cerr << error.what() << " (code " << error.code() << ")\n";
  return 1;
}
