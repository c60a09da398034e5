# Arguments of programs go through as they are.
cat > j.sh <<'X'
#!/bin/bash
show='printf "[%s]" "$@"; echo'
srun bash -c "$show" x a 'b c' '' '*' '$HOME' '"q"' "it's" '\' -n 3 -- --flag
srun -- bash -c "$show" x y
srun -n1 bash -c 'echo "$#"' x
srun echo '%t' '%j' -n2
srun printf '%s|' a 'b  c'; echo
srun bash -c 'echo $0'
srun env | grep -c '^SLURM_PROCID=0$'
a=(1 '2 3'); srun bash -c "$show" x "${a[@]}"
srun bash -c 'cat <<E
text $SLURM_PROCID
E'
srun bash -c "exec -a other bash -c 'echo \$0'"
X
sbatch -W -o o j.sh; cat o
