/** Properties of an accelerator, independent of its machine. */
export interface Accelerator {
  /** The one name used inside Crucible. */
  name: string
  /** Other spellings found in job files and driver reports, compared without case, spaces, dashes and underscores. */
  aliases: string[]
  /** Memory as the vendor states it, in GB per device; drivers report a little less. */
  memoryGb: number
  /** The type of the same chip and memory that a job names when either will do: `H100` of `H100-PCIe`. */
  variantOf?: string
}

/** Name, memory in GB, other spellings: from the vendors' data sheets (NVIDIA, AWS Neuron), read November 2026. */
const DATA_SHEETS: readonly [string, number, ...string[]][] = [
  ['K80', 12, 'Tesla K80'],
  ['P100', 16, 'Tesla P100', 'Tesla P100-PCIE-16GB'],
  ['V100', 16, 'Tesla V100', 'Tesla V100-SXM2-16GB'],
  ['V100-32GB', 32, 'Tesla V100-SXM2-32GB', 'Tesla V100-SXM3-32GB'],
  ['T4', 16, 'Tesla T4'],
  ['T4G', 16, 'NVIDIA T4G'],
  ['M60', 8, 'Tesla M60'],
  ['A10', 24, 'NVIDIA A10'],
  ['A10G', 24, 'NVIDIA A10G'],
  ['L4', 24, 'NVIDIA L4'],
  ['L40S', 48, 'NVIDIA L40S'],
  ['RTX3090', 24, 'GeForce RTX 3090', 'NVIDIA GeForce RTX 3090'],
  ['RTX4090', 24, 'GeForce RTX 4090', 'NVIDIA GeForce RTX 4090'],
  ['RTX6000', 24, 'RTX 6000', 'Quadro RTX 6000'],
  ['RTX8000', 48, 'RTX 8000', 'Quadro RTX 8000'],
  ['RTXA6000', 48, 'RTX A6000', 'NVIDIA RTX A6000', 'A6000'],
  ['RTX6000Ada', 48, 'RTX 6000 Ada', 'NVIDIA RTX 6000 Ada Generation'],
  ['RTXPRO4500', 32, 'RTX PRO 4500', 'NVIDIA RTX PRO 4500 Blackwell Server Edition'],
  ['RTXPRO6000', 96, 'RTX PRO 6000', 'NVIDIA RTX PRO 6000 Blackwell Server Edition'],
  ['A100', 40, 'A100-40GB', 'NVIDIA A100-SXM4-40GB'],
  ['A100-PCIe', 40, 'NVIDIA A100-PCIE-40GB'],
  ['A100-80GB', 80, 'NVIDIA A100-SXM4-80GB'],
  ['A100-80GB-PCIe', 80, 'NVIDIA A100 80GB PCIe'],
  ['H100', 80, 'H100-80GB', 'NVIDIA H100 80GB HBM3'],
  ['H100-PCIe', 80, 'NVIDIA H100 PCIe'],
  ['GH200', 96, 'NVIDIA GH200 480GB'],
  ['H200', 141, 'NVIDIA H200'],
  ['B200', 180, 'NVIDIA B200'],
  ['B300', 268, 'NVIDIA B300'],
  ['GB200', 186, 'NVIDIA GB200'],
  ['GB300', 279, 'NVIDIA GB300', 'NVIDIA GB300 NVL'],
  ['Trainium', 32, 'trn1'],
  ['Trainium2', 96, 'trn2'],
  ['Inferentia2', 32, 'inf2'],
]

/** Suffix of PCIe variants: PCIe supplies less power than SXM and makes the same chip slower. */
const PCIE = '-PCIe'

export const ACCELERATORS: readonly Accelerator[] = DATA_SHEETS.map(([name, memoryGb, ...aliases]) => ({
  name,
  aliases,
  memoryGb,
  variantOf: name.endsWith(PCIE) ? name.slice(0, -PCIE.length) : undefined,
}))

const BY_SPELLING = new Map(
  ACCELERATORS.flatMap((a) => [a.name, ...[a.name, ...a.aliases].map(fold)].map((spelling) => [spelling, a])),
)

/** Returns the accelerator with a name, or `undefined` if it is unknown. Unknown names are valid, because new types appear. */
export function findAccelerator(spelling: string): Accelerator | undefined {
  return BY_SPELLING.get(spelling) ?? BY_SPELLING.get(fold(spelling))
}

/** Chips of AWS Neuron. They run no CUDA program, so a job gets one only if it names it. */
const WITHOUT_CUDA: readonly string[] = ['Trainium', 'Trainium2', 'Inferentia2']

/** Whether CUDA programs cannot run on an accelerator; false for an unknown one. */
export function lacksCuda(spelling: string): boolean {
  return WITHOUT_CUDA.includes(findAccelerator(spelling)?.name ?? spelling)
}

/** Whether a machine's accelerator, if it has one, satisfies a job that names these, or none. */
export function isAcceptable(has: string | undefined, wanted: readonly string[] = []): boolean {
  if (wanted.length === 0) return has === undefined || !lacksCuda(has)
  return has !== undefined && wanted.some((name) => isAccelerator(has, name))
}

/** Whether an accelerator satisfies a job that names one: the same type, or a variant of it. */
export function isAccelerator(has: string, wanted: string): boolean {
  const name = findAccelerator(wanted)?.name ?? wanted
  const known = findAccelerator(has)
  return (known?.name ?? has) === name || known?.variantOf === name
}

/**
 * Canonical name of an accelerator that a provider names without its memory; for a type with two sizes, the nearest size. An unknown
 * accelerator keeps the provider's name.
 */
export function acceleratorByMemory(spelling: string, memoryGb: number | undefined): string {
  const name = findAccelerator(spelling)?.name ?? spelling
  if (memoryGb === undefined) return name
  const distance = (one: Accelerator): number => Math.abs(one.memoryGb - memoryGb)
  const [nearest] = ACCELERATORS.filter((one) => one.name === name || one.name.startsWith(`${name}-`)).sort(
    (a, b) => distance(a) - distance(b),
  )
  return nearest?.name ?? name
}

function fold(spelling: string): string {
  return spelling.toLowerCase().replace(/[\s_-]/g, '')
}
