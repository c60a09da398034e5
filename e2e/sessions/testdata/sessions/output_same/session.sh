# One file for both streams, files that exist, folders that do not.
printf '#!/bin/bash\necho out $1\necho err $1 >&2\n' > j.sh
sbatch -W -o both -e both j.sh a; cat both
sbatch -W -o both j.sh b; cat both
sbatch -W -o both --open-mode=append j.sh c; cat both
sbatch -W -o one -e two j.sh d; cat one; echo --; cat two
mkdir -p dir; sbatch -W -o dir/%x_%j -J nm j.sh e; ls dir | sed 's/[0-9]*$/N/'
id=$(sbatch -W --parsable -o none/x j.sh f); echo $?; scontrol show job $id | grep -oE '(JobState|ExitCode)=[^ ]*'
sbatch -W -o /dev/null -e three j.sh g; cat three
sbatch -W -D dir -o rel j.sh h; cat dir/rel
sbatch -W -e onlyerr j.sh i; cat onlyerr; cat slurm-*.out
