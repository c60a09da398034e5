# Readers that end before the steps that write to them: the exit code is the task's.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
srun -n1 seq 200000 | head -n1; echo "rc ${PIPESTATUS[*]}"
srun -n1 bash -c 'seq 200000; exit 3' | head -n1; echo "rc ${PIPESTATUS[*]}"
srun -n2 bash -c 'seq 200000; echo $SLURM_PROCID > done.$SLURM_PROCID' | head -n1 | grep -c .; echo "rc ${PIPESTATUS[*]}"; cat done.*
srun -l -n1 seq 200000 | head -n1; echo "rc ${PIPESTATUS[*]}"
srun -n1 bash -c 'seq 200000 >&2; echo out' 2> >(head -n1 >&2); echo "rc $?"
srun -n1 bash -c 'seq 200000; echo err >&2' 2> err | true; echo "rc ${PIPESTATUS[*]}"; cat err
set -eo pipefail; srun -n1 seq 200000 | head -n1; echo "goes on"
timeout 5 srun -n1 yes | head -n1
echo never
X
sbatch -W -o o j.sh > /dev/null; echo $?; grep -v '^srun\|^slurmstepd' o
srun -Q -n1 seq 200000 | head -n1; echo "rc ${PIPESTATUS[*]}"
