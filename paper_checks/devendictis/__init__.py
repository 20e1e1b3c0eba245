"""Records of ``devendictis``."""

RECORDS = ()
