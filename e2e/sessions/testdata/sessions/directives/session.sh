# Which lines are read as options.
cat > j.sh <<'X'
#!/bin/bash
# A comment
#SBATCH -J "two words"
##SBATCH -n7
# SBATCH -n8
 #SBATCH -n9
#SBATCH	--comment='x y'
#SBATCH --ntasks=2 # three
#sbatch -n6

#SBATCH -c2
echo "$SLURM_JOB_NAME n $SLURM_NTASKS c $SLURM_CPUS_PER_TASK N $SLURM_NNODES"
#SBATCH -N3
X
sbatch -W -o o j.sh; echo $?; cat o
sbatch -W -o o -n3 -J over j.sh; cat o
SBATCH_JOB_NAME=env sbatch -W -o o j.sh; cat o
printf '#!/bin/bash\n#SBATCH -n2 -n3\n#SBATCH --ntasks 4\necho $SLURM_NTASKS\n' > k.sh; sbatch -W -o o k.sh; cat o
printf '#!/bin/bash\n#SBATCH --no-such\necho x\n' > l.sh; sbatch l.sh; echo $?
printf '#!/bin/bash\n#SBATCH -n\necho x\n' > m.sh; sbatch m.sh; echo $?
printf '#!/bin/bash\n#SBATCH echo\necho x\n' > n.sh; sbatch -W -o o n.sh; echo $?
printf '#!/bin/bash\n#SBATCH\necho empty\n' > p.sh; sbatch -W -o o p.sh; echo $?; cat o
printf '#!/bin/bash\n#SBATCHX -n2\necho x\n' > q.sh; sbatch q.sh; echo $?
