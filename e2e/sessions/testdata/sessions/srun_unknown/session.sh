# Options that srun does not know, one of them of a plugin that is not there (pyxis).
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -o out
srun --foo true; echo "code $?"
srun --container-image=some/image true; echo "code $?"
srun --container-image some/image -n1 hostname; echo "code $?"
srun -n1 echo a step; echo "code $?"
X
sbatch -W j.sh; echo $?
