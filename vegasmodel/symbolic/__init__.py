"""SymPy derivations of the closed forms, each from its premises; imports nothing of ours."""
