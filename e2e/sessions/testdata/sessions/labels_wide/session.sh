# unordered: stdout o1 o2 o3 o4
# Labels are as wide as the highest rank.
sbatch -W -o o1 -N3 -n12 --wrap='srun -l echo x' > /dev/null; sort o1
sbatch -W -o o2 -n1 --wrap='srun -l -n10 -O echo y' > /dev/null; sort o2
sbatch -W -o o3 -n2 --wrap='srun -l printf "a\nb"; echo; srun -l bash -c "printf c; sleep 0.2; printf d; echo"; srun -l -n1 bash -c "echo e >&2"' > /dev/null; sort o3
sbatch -W -o o4 -n2 --wrap='srun -l true; srun -l -n1 echo; SLURM_LABELIO=1 srun -n1 echo v' > /dev/null; cat o4
