# Twenty samples, one job each, and the results merged in their order, in Snakemake.
SAMPLES = [f"{n:02}" for n in range(1, 21)]
rule merge:
    input: expand("counts/{sample}.txt", sample=SAMPLES)
    output: "merged.txt"
    shell: "cat {input} > {output}"
rule make:
    output: "samples/{sample}.txt"
    shell: "seq {wildcards.sample} > {output}"
rule count:
    input: "samples/{sample}.txt"
    output: "counts/{sample}.txt"
    shell: "wc -l < {input} > {output}"
