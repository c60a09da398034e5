# Where scripts and steps are.
mkdir -p a/b
cat > j.sh <<'X'
#!/bin/bash
echo "in ${PWD##*/} submitted ${SLURM_SUBMIT_DIR##*/}"
srun bash -c 'echo "step ${PWD##*/} submitted ${SLURM_SUBMIT_DIR##*/}"'
mkdir -p deep; cd deep; srun bash -c 'echo "cd ${PWD##*/} submitted ${SLURM_SUBMIT_DIR##*/}"'
srun -D /tmp bash -c 'echo "$PWD ${SLURM_SUBMIT_DIR##*/}"'
srun --chdir=.. bash -c 'echo "up ${PWD##*/}"'
srun -D /missing bash -c 'echo "missing $PWD"'
X
top=$PWD
sbatch -W -o o1 j.sh; grep -v slurmstepd o1 | sed "s#${top##*/}#TOP#g"
sbatch -W -D a -o o2 j.sh; grep -v slurmstepd a/o2 | sed "s#${top##*/}#TOP#g"
sbatch -W --chdir=$PWD/a/b -o o3 j.sh; grep -v slurmstepd a/b/o3 | sed "s#${top##*/}#TOP#g"
sbatch -W -D missing -o $top/o4 --wrap='pwd'; echo $?; grep -v slurmstepd o4
cd a; sbatch -W -o o5 ../j.sh; grep -v slurmstepd o5 | sed "s#${top##*/}#TOP#g"
