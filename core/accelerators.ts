/** What is known of an accelerator whatever machine it sits in. */
export interface Accelerator {
  /** The one name used inside Crucible. */
  name: string
  /** Other spellings met in job files and in what drivers report, compared without case, spaces, dashes and underscores. */
  aliases: string[]
  /** Memory as the vendor states it, in GB per device; what the driver offers is a little less. */
  memoryGb: number
  /**
   * Training speed relative to an A100 40 GB, as a first guess until the job's own steps are measured: the ratio of
   * dense 16-bit matrix throughput in the vendors' data sheets (fp32 for types older than V100), damped by the square
   * root because training is seldom bound by matrix throughput alone.
   */
  relativeSpeed: number
}

/** Dense 16-bit throughput of an A100 in TFLOPS, the unit of `relativeSpeed` (NVIDIA A100 data sheet). */
const A100_TFLOPS = 312

/** Name, memory in GB, dense 16-bit TFLOPS, other spellings: from the vendors' data sheets (NVIDIA, AWS Neuron), read November 2026. */
const DATA_SHEETS: readonly [string, number, number, ...string[]][] = [
  ['K80', 12, 4.1, 'Tesla K80'],
  ['P100', 16, 18.7, 'Tesla P100', 'Tesla P100-PCIE-16GB'],
  ['V100', 16, 125, 'Tesla V100', 'Tesla V100-SXM2-16GB'],
  ['V100-32GB', 32, 125, 'Tesla V100-SXM2-32GB', 'Tesla V100-SXM3-32GB'],
  ['T4', 16, 65, 'Tesla T4'],
  ['T4G', 16, 65, 'NVIDIA T4G'],
  ['M60', 8, 4.8, 'Tesla M60'],
  ['A10', 24, 125, 'NVIDIA A10'],
  ['A10G', 24, 70, 'NVIDIA A10G'],
  ['L4', 24, 121, 'NVIDIA L4'],
  ['L40S', 48, 362, 'NVIDIA L40S'],
  ['RTX4090', 24, 165, 'GeForce RTX 4090', 'NVIDIA GeForce RTX 4090'],
  ['RTX6000', 24, 130, 'RTX 6000', 'Quadro RTX 6000'],
  ['RTXA6000', 48, 155, 'RTX A6000', 'NVIDIA RTX A6000', 'A6000'],
  ['RTXPRO4500', 32, 211, 'RTX PRO 4500', 'NVIDIA RTX PRO 4500 Blackwell Server Edition'],
  ['RTXPRO6000', 96, 500, 'RTX PRO 6000', 'NVIDIA RTX PRO 6000 Blackwell Server Edition'],
  ['A100', 40, 312, 'A100-40GB', 'NVIDIA A100-SXM4-40GB', 'NVIDIA A100-PCIE-40GB'],
  ['A100-80GB', 80, 312, 'NVIDIA A100-SXM4-80GB', 'NVIDIA A100 80GB PCIe'],
  ['H100', 80, 989, 'H100-80GB', 'NVIDIA H100 80GB HBM3', 'NVIDIA H100 PCIe'],
  ['GH200', 96, 989, 'NVIDIA GH200 480GB'],
  ['H200', 141, 989, 'NVIDIA H200'],
  ['B200', 180, 2250, 'NVIDIA B200'],
  ['B300', 268, 2250, 'NVIDIA B300'],
  ['Trainium', 32, 95, 'trn1'],
  ['Trainium2', 96, 667, 'trn2'],
  ['Inferentia2', 32, 95, 'inf2'],
]

export const ACCELERATORS: readonly Accelerator[] = DATA_SHEETS.map(
  ([name, memoryGb, tflops, ...aliases]) => ({
    name,
    aliases,
    memoryGb,
    relativeSpeed: Math.round(Math.sqrt(tflops / A100_TFLOPS) * 100) / 100,
  }),
)

const BY_SPELLING = new Map(
  ACCELERATORS.flatMap((a) => [a.name, ...a.aliases].map((spelling) => [fold(spelling), a])),
)

/** The accelerator that a name means, or `undefined` when it is not known (which is not an error: new types appear). */
export function findAccelerator(spelling: string): Accelerator | undefined {
  return BY_SPELLING.get(fold(spelling))
}

/**
 * The canonical name of an accelerator that a provider names without its memory, of which some come in two sizes: the nearest is meant. The
 * provider's own name for one that is not known.
 */
export function acceleratorByMemory(spelling: string, memoryGb: number | undefined): string {
  const name = findAccelerator(spelling)?.name ?? spelling
  if (memoryGb === undefined) return name
  const distance = (one: Accelerator): number => Math.abs(one.memoryGb - memoryGb)
  const [nearest] = ACCELERATORS.filter(
    (one) => one.name === name || one.name.startsWith(`${name}-`),
  ).sort((a, b) => distance(a) - distance(b))
  return nearest?.name ?? name
}

function fold(spelling: string): string {
  return spelling.toLowerCase().replace(/[\s_-]+/g, '')
}
