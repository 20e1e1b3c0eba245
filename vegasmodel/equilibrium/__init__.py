"""Closed forms and algebraic solvers, one model a file.  Arrays in, arrays out."""
