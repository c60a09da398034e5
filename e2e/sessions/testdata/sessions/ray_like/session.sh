# The loop that scripts with Ray have: a head on the first node, a worker on each other one, and a driver in the script.
mkdir -p started; export PATH=$PWD/bin:$PATH
sbatch ray.sh; settle; grep -v 'srun:\|slurmstepd' ray.out; rm -r started ray.out
squeue -h -t all -o '%T %D'
