"""Records of ``boutremans``."""

RECORDS = ()
