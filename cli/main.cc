#include <epona/version.h>

#include <cstdio>

int main() {
  std::printf("epona %s\n", epona::version().data());
  return 0;
}
