# Ranges of tasks in scontrol and scancel.
id=$(sbatch --parsable -H -a 0-9%3 -n1 -t 5 -o /dev/null --wrap 'sleep 30')
run() { echo "== $*"; "$@" 2>/dev/null; echo "-> $?"; }
q() { squeue -h -r -t PD,R,S -o '%K %t %l' "$@" | sort -n; }
squeue -h -o '%i|%K|%t' -j ${id}_3
squeue -h -o '%i|%K|%t' -j "${id}_1,${id}_2"
squeue -h -r -o '%i|%K|%t' -j "${id}_1,${id}_2"
run scontrol release "${id}_[1-3]"
while [ $(squeue -h -t R -j $id | wc -l) -lt 3 ]; do sleep 0.2; done
q -j $id
run scontrol hold "${id}_[4-5]"
run scontrol release "${id}_1-3"
run scontrol release "${id}_6-6"
run scontrol suspend "${id}_[1-2]"
sleep 1
q -j $id
run scontrol resume "${id}_[1-2]"
run scontrol requeue "${id}_[7-8]"
run scontrol hold "${id}_[42]"
run scontrol hold "${id}_x"
run scontrol hold "${id}_[x]"
run scontrol hold "${id}_"
run scontrol hold "${id}_[1-"
run scontrol update jobid="${id}_[4-6]" TimeLimit=4
run scontrol update jobid="${id}_4-5" TimeLimit=3
run scontrol update jobid="${id}_x" TimeLimit=3
run scontrol update jobid="${id}_[42-43]" TimeLimit=3
run scontrol show job "${id}_42"
q -j $id
scancel "${id}_[1-3]"; echo "-> $?"
sleep 5
q -j $id
scancel "${id}_4-6" 2>/dev/null; echo "-> $?"
scancel "${id}_[7,42]" 2>/dev/null; echo "-> $?"
scancel "${id}_[8-9" 2>/dev/null; echo "-> $?"
scancel ${id}_x 2>/dev/null; echo "-> $?"
scancel "${id}_[x]" 2>/dev/null; echo "-> $?"
scancel ${id}_77 2>/dev/null; echo "-> $?"
sleep 1
q -j $id
scancel $id
settle
