# Scripts that clear their variables: env -i, unset, module purge, su -, and steps behind that.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2 -c2 --mem=200 -J clear
v='echo "${SLURM_NTASKS:-no} ${SLURM_CPUS_PER_TASK:-no} ${SLURM_PROCID:-no} ${A:-no}"'
export A=a
env -u A srun -n1 bash -c "$v"; env -u SLURM_CPUS_PER_TASK srun -n1 bash -c "$v"; env -u SLURM_NTASKS srun bash -c "$v" | sort; (unset SLURM_MEM_PER_NODE SLURM_CPUS_PER_TASK; srun -n1 bash -c "$v")
srun -n1 env -i /bin/bash -c "$v"; srun -n1 bash --norc --noprofile -c "$v"; srun -n1 bash -lc "$v"; bash -lc "srun -n1 bash -c '$v'"; sh -c "srun -n1 sh -c '$v'"
SLURM_NTASKS=1 srun bash -c "$v"; SLURM_CPUS_PER_TASK=1 srun -n1 bash -c "$v"; (export SLURM_EXPORT_ENV=ALL; srun -n1 bash -c "$v"); A=b srun -n1 bash -c "$v"
(export PATH=$PATH:/usr/bin HOME=/tmp; cd; pwd; srun -n1 pwd); python3 -c 'import os, subprocess; e = {k: v for k, v in os.environ.items() if k != "A"}; subprocess.run(["srun", "-n1", "bash", "-c", "echo ${A:-gone}"], env=e)'
perl -e 'delete $ENV{A}; print `srun -n1 bash -c "echo \${A:-gone}"`'; find . -name j.sh -exec srun -n1 basename {} \;
(readonly B=1; export B; srun -n1 bash -c 'echo $B'); LC_ALL=C srun -n1 bash -c 'echo $LC_ALL'; declare -A map=([k]=v); srun -n1 bash -c "echo ${map[k]}"
while IFS= read -r -d '' f; do srun -n1 echo "file $f" < /dev/null; done < <(printf 'a b\0c\nd\0')
X
sbatch -W -o o j.sh > /dev/null; echo $?; grep -v '^srun\|^slurmstepd' o
