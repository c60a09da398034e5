# set -e, pipefail and functions around srun.
cat > a.sh <<'X'
#!/bin/bash
set -e
srun true; echo one
srun bash -c 'exit 9' || echo "caught $?"
if srun false; then echo yes; else echo no; fi
srun bash -c 'exit 9'
echo never
X
cat > b.sh <<'X'
#!/bin/bash
set -euo pipefail
srun echo piped | cat
run() { srun "$@" | sed 's/^/> /'; }
run echo function
srun bash -c 'echo partial; exit 2' | cat
echo never
X
cat > c.sh <<'X'
#!/bin/bash -eu
echo ${UNSET:-default}
echo $UNSET
X
for f in a b c; do id=$(sbatch --parsable -e /dev/null -o o.$f $f.sh); settle; scontrol show job $id | grep -oE '(JobState|ExitCode)=[^ ]*'; grep -v '^srun\|slurm_script' o.$f; done
