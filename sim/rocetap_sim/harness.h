// What is included before everything that is compiled into the library: the model's own messages
// go to the harness, never to standard output.
#pragma once
extern "C" int rocetap_print(const char* format, ...);
