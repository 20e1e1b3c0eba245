"""Records of ``tsang``."""

RECORDS = ()
