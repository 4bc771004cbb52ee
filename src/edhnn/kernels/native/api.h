// How a function is made visible to ctypes.
#pragma once

#ifdef _WIN32
#define EDHNN_API extern "C" __declspec(dllexport)
#else
#define EDHNN_API extern "C" __attribute__((visibility("default")))
#endif
