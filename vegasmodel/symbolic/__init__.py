"""SymPy derivations of the closed forms, each from its premises; imports no model of ours."""

from vegasmodel.extras import need

need("symbolic", "vegasmodel.symbolic")
