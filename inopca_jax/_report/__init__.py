"""The report: computes the figures of `paper` in processes, and writes them as web pages.

Figures and claims themselves are in `paper`.
"""
