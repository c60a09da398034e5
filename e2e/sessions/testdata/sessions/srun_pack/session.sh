# srun -m pack and nopack, where the nodes have room.
sbatch -W -N3 -n12 --exclusive -o o1 --wrap 'for m in pack block,pack block,nopack nopack cyclic,pack cyclic,nopack; do for n in "-n4" "-n4 -N3" "-n6"; do echo "$m $n: $(srun -m $m $n bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME \$SLURM_DISTRIBUTION" 2>/dev/null | sort -n | tr "\n" ";")"; done; done'; cat o1
sbatch -W -N3 -n12 --exclusive -m pack -o o2 --wrap 'for n in "-n4" "-n4 -N3"; do echo "$n: $(srun $n bash -c "echo \$SLURM_PROCID \$SLURMD_NODENAME \$SLURM_DISTRIBUTION" 2>/dev/null | sort -n | tr "\n" ";")"; done; env | grep DIST'; cat o2
sbatch -W -N2 -n4 -o o3 --wrap 'env | grep DIST'; cat o3
