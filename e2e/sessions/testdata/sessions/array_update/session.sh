# Time limits, nice values and priorities of single tasks of an array, which an update of the whole
# array takes away.
cat > job.sh <<'S'
#!/bin/bash
while ! [ -e stop ]; do sleep 0.2; done
S
id=$(sbatch --parsable --array=0-6%2 -t 10 -N1 --exclusive -o /dev/null job.sh)
while [ $(squeue -h -t R -j $id | wc -l) -lt 2 ]; do sleep 0.2; done
show() { squeue -h -r -j $id -o '%K %l %y %t' | sort; }
scontrol update JobId=${id}_0 TimeLimit=5; echo "runs: $?"
scontrol update JobId=${id}_3 TimeLimit=7; echo "waits: $?"
scontrol update JobId=${id}_4 Nice=100; echo "nice: $?"
scontrol update JobId=${id}_[1,2] TimeLimit=8; echo "two: $?"
scontrol update JobId=${id}_3 TimeLimit=+2; echo "more: $?"
scontrol update JobId=${id}_9 TimeLimit=7; echo "does not exist: $?"
scontrol update JobId=${id}_[2,9] Nice=5; echo "one of two exists: $?"
show
squeue -h -j $id -o '%i %l' | sed "s/^$id/ID/" | sort
scontrol show job ${id}_3 | grep -o 'TimeLimit=[^ ]*'
scontrol update JobId=${id}_5 Priority=0; echo "hold: $?"
scontrol update JobId=${id} TimeLimit=9; echo "all: $?"
show
scontrol update JobId=${id} ArrayTaskThrottle=7; echo "throttle: $?"
touch stop
while squeue -h -r -j $id -o %K 2>/dev/null | grep -qv 5; do sleep 0.2; done
show
scontrol release ${id}_5
settle
