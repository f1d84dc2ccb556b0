#include "base/result.h"

int main() { return 0; }
