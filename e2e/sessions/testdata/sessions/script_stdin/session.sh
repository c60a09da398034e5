# Scripts that come on standard input, and their names and arguments.
printf '#!/bin/bash\n#SBATCH -n2\necho "args $# $1 n $SLURM_NTASKS $(basename $0)"\n' > job.sh
sbatch -W -o o1 < job.sh; cat o1
cat job.sh | sbatch -W -o o2 -J named; cat o2; squeue -h -t all -S i -o %j
sbatch -W -o o3 -n3 <<'X'
#!/bin/sh
echo "here $SLURM_NTASKS"
X
cat o3
mkdir -p sub; cp job.sh sub/other.sh
sbatch -W -o o4 sub/other.sh one "two three"; cat o4
sbatch -W -o o5 $PWD/sub/other.sh; cat o5
sbatch -W -o o6 ./sub/../job.sh --flag; cat o6
PATH=$PWD/sub:$PATH sbatch -W -o o7 other.sh; echo $?; [ -e o7 ] && cat o7
sbatch -W nothing.sh; echo $?
sbatch -W sub; echo $?
