# --wrap.
for w in 'echo plain' 'echo "$SLURM_JOB_NAME"' 'exit 3' 'false; echo $?' $'echo two\necho lines' 'echo $0 | sed "s#.*/##"' 'srun echo step' 'a=1; echo $((a+1))' "echo 'single'" '' 'cat' 'echo ${BASH_VERSION:+bash}.'; do
  rm -f o; sbatch -W -o o --wrap="$w" > /dev/null; echo "rc $?"; [ -e o ] && cat o
done
sbatch --wrap=true script.sh; echo $?
sbatch -W -o o -J named --wrap='echo $SLURM_JOB_NAME'; cat o
