"""The simulated programmer behind the mock backend: it reads a rendered prompt as a model would, as
text, and writes a reply. Each language has a module with `propose` (an honest program) and
`sabotage` (one that is wrong in a known way).
"""
