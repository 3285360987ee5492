import { createHash } from 'node:crypto'
import type { ProgramAnswer, ProgramCall } from './control'
import { ProgramError } from './errors'

/** A simulated GPU of a machine; its load can be changed while the machine runs. */
export interface SimulatedGpu {
  /** The driver's name, such as `Tesla V100-SXM2-16GB`. */
  name: string
  memoryMiB: number
  /** Default 0. */
  memoryUsedMiB?: number
  /** Default 0. */
  utilizationPercent?: number
}

/** Exit code for unknown arguments. */
const SMI_INVALID = 2
const DRIVER = '570.172.08'

type Field = [value: (gpu: SimulatedGpu, index: number) => string, unit?: string]

const FIELDS: Readonly<Record<string, Field>> = {
  index: [(_, index) => String(index)],
  count: [() => '1'],
  name: [({ name }) => name],
  gpu_name: [({ name }) => name],
  uuid: [(gpu, index) => uuidOf(gpu, index)],
  gpu_uuid: [(gpu, index) => uuidOf(gpu, index)],
  driver_version: [() => DRIVER],
  'memory.total': [({ memoryMiB }) => String(memoryMiB), 'MiB'],
  'memory.used': [({ memoryUsedMiB }) => String(memoryUsedMiB ?? 0), 'MiB'],
  'memory.free': [({ memoryMiB, memoryUsedMiB }) => String(memoryMiB - (memoryUsedMiB ?? 0)), 'MiB'],
  'utilization.gpu': [({ utilizationPercent }) => String(utilizationPercent ?? 0), '%'],
  'utilization.memory': [
    ({ memoryMiB, memoryUsedMiB }) => String(Math.round(((memoryUsedMiB ?? 0) / memoryMiB) * 100)),
    '%',
  ],
  'temperature.gpu': [() => '40'],
  'power.draw': [() => '[N/A]', 'W'],
  'ecc.errors.uncorrected.volatile.total': [() => '0'],
}

/** `nvidia-smi -L` and `nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits] [-i INDEX]`. */
export function nvidiaSmi(call: ProgramCall, gpus: SimulatedGpu[]): ProgramAnswer {
  const args = call.arguments.flatMap((word) => (word.startsWith('--') ? word.split(/=(.*)/s, 2) : [word]))
  if (args.includes('-L') || args.includes('--list-gpus'))
    return said(gpus.map((gpu, index) => `GPU ${index}: ${gpu.name} (UUID: ${uuidOf(gpu, index)})`))
  const valueOf = (...names: string[]): string | undefined => {
    const at = args.findIndex((word) => names.includes(word))
    return at === -1 ? undefined : args[at + 1]
  }
  const query = valueOf('--query-gpu')
  const format = valueOf('--format')?.split(',') ?? []
  if (query === undefined || !format.includes('csv'))
    throw new ProgramError('This nvidia-smi knows -L, and --query-gpu=... with --format=csv.', SMI_INVALID)
  const fields = query.split(',').map((name) => fieldOf(name.trim()))
  const hasUnits = !format.includes('nounits')
  const only = valueOf('-i', '--id')?.split(',')
  const rows = gpus.flatMap((gpu, index) => {
    if (only !== undefined && !only.includes(String(index)) && !only.includes(uuidOf(gpu, index))) return []
    return [
      fields.map(({ value, unit }) => withUnit(value(gpu, index), hasUnits ? unit : undefined)).join(', '),
    ]
  })
  if (only !== undefined && rows.length === 0) throw new ProgramError('No devices were found', 6)
  const header = fields.map(({ name, unit }) => (hasUnits && unit ? `${name} [${unit}]` : name)).join(', ')
  return said([...(format.includes('noheader') ? [] : [header]), ...rows])
}

function fieldOf(name: string): { name: string; value: Field[0]; unit: string | undefined } {
  const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined
  if (field === undefined)
    throw new ProgramError(`Field "${name}" is not a valid field to query.`, SMI_INVALID)
  return { name, value: field[0], unit: field[1] }
}

function withUnit(value: string, unit: string | undefined): string {
  return unit === undefined || value.startsWith('[') ? value : `${value} ${unit}`
}

/** Returns a UUID that is the same for the same index in the same kind of machine; it does not distinguish machines. */
function uuidOf({ name }: SimulatedGpu, index: number): string {
  const digest = createHash('sha256').update(`${name}/${index}`).digest('hex')
  return `GPU-${[digest.slice(0, 8), digest.slice(8, 12), digest.slice(12, 16), digest.slice(16, 20), digest.slice(20, 32)].join('-')}`
}

function said(lines: string[]): ProgramAnswer {
  return { exitCode: 0, stdout: lines.map((line) => `${line}\n`).join(''), stderr: '' }
}
