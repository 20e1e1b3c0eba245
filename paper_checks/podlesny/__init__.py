"""Records of ``podlesny``."""

RECORDS = ()
