# Numbers in file names with a width.
mkdir o; cd o
for p in '%20j' '%10j' '%9j' '%11j' '%100j' '%0j' '%00j' '%00005j' '%12A' '%20t' '%3n' '%1j' '%99j.x' '%5%j' '%20x' '%2j%3j' '%-5j' '%+5j' '%5J' '%20J' '%4s' '%20s' '%0005t' '%3q' '%5'; do
  timeout 60 sbatch -W -J nm -o "p-$p" --wrap='srun -n1 -o "s-'"$p"'" true' > /dev/null 2>&1; echo "$?: $(ls | sed -E 's/1[0-9]{3}/N/g' | tr '\n' ' ')"; rm -f *
done
for p in '%20a' '%10a' '%4A_%3a'; do timeout 60 sbatch -W -J nm -a 2 -o "p-$p" --wrap=true > /dev/null 2>&1; ls | sed -E 's/1[0-9]{3}/N/g'; rm -f *; done
