# Folders for temporary files, the home, the user.
cat > j.sh <<'X'
#!/bin/bash
[ -d "$TMPDIR" ] && echo tmpdir; t=$(mktemp -d) && echo x > $t/x && cat $t/x && rm -r $t
echo "$USER $LOGNAME ${HOME:+home} $(id -u)"
[ "$HOME" = "$SLURM_SUBMIT_DIR" ] && echo same
srun bash -c '[ -d "$TMPDIR" ] && echo "task $USER $(id -u)"'
echo kept > $HOME/kept; mkdir -p $HOME/results/$SLURM_JOB_NAME && touch $HOME/results/$SLURM_JOB_NAME/done
cd $(mktemp -d /tmp/session-XXXXXX) && srun pwd | sed 's/-.*//'; rm -r $PWD
X
sbatch -W -o o j.sh > /dev/null; cat o; cat kept; ls results
