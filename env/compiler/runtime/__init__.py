"""C text in, callable out: toolchains, a build cache that is verified on read, and calls through
cffi.
"""
