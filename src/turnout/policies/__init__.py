"""Versions of routes as files: what each decides by, the evidence for it, which of them is served, and which were before."""
