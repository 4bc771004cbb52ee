"""The kernels in torch: any device and dtype, differentiable, and the judge of the native ones."""
