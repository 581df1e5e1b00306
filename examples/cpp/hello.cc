// Prints the library's version: the smallest program against an installed copy.
#include <epona/version.h>

#include <iostream>

int main() { std::cout << "epona " << epona::version() << '\n'; }
