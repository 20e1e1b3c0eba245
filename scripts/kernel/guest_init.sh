#!/bin/sh
# First process of the virtual machine: runs every job of the tar on the first disk with rig.py,
# and writes the results as a tar to the second one, after each job.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /run
mkdir -p /run/netns /job /out
for module in virtio_pci virtio_blk veth tun sch_netem sch_tbf tcp_diag inet_diag tcp_vegas; do
    modprobe "$module"
done
ip link set lo up
cd /job && tar xf /dev/vda
for job in *.json; do
    name=${job%.json}
    python3 -B rig.py "$job" "/out/$name.log" >"/out/$name.counted" 2>"/out/$name.failed"
    [ -s "/out/$name.failed" ] || rm "/out/$name.failed"
    echo "$name $(cat /out/"$name".*ed)"
    (cd /out && tar cf /dev/vdb . && sync)
done
echo o >/proc/sysrq-trigger
sleep 100
