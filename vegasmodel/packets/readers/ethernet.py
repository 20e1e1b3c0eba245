"""Sizes of packets in Ethernet, in bytes."""

MTU = 1500  # an IP packet that most networks carry
MOST_DATA = 1460  # data in such a packet with the shortest headers of IPv4 and TCP
USUAL_DATA = 1448  # data in such a packet with TCP's timestamps
