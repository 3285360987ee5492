import { findAccelerator } from '../../core/accelerators'
import { runProgram, type ProgramAnswer } from './programs'

export interface Gpu {
  /** The driver's index, in PCI bus order. */
  index: number
  /** The canonical name if known, otherwise the driver's. */
  accelerator: string
  memoryGiB: number
}

export interface GpuInventory {
  gpus: Gpu[]
  /** Why some GPUs may be unusable, as a sentence. */
  trouble?: string
}

/** A driver without persistence mode takes seconds to wake its devices. */
const SMI_TIMEOUT_MS = 20_000
const QUERY = ['--query-gpu=index,uuid,name,memory.total', '--format=csv,noheader,nounits']

/**
 * The GPUs that `nvidia-smi` reports and that `CUDA_VISIBLE_DEVICES` of this process, if set, allows. Empty without `nvidia-smi`.
 */
export async function readGpus(env: Record<string, string>, signal: AbortSignal): Promise<GpuInventory> {
  return inventoryOf(
    await runProgram('nvidia-smi', QUERY, { env, timeoutMs: SMI_TIMEOUT_MS, signal }),
    env.CUDA_VISIBLE_DEVICES,
  )
}

/** @internal Tests read the output of many drivers. */
export function inventoryOf(answer: ProgramAnswer, visible?: string): GpuInventory {
  if (answer.kind !== 'answered') {
    return { gpus: [], trouble: answer.kind !== 'missing' ? `nvidia-smi ${answer.message}` : undefined }
  }
  const lines = answer.output.split('\n').filter((line) => line.trim() !== '' && !/^no devices/i.test(line))
  const rows = lines.map(parseRow)
  const broken = lines.find((_, at) => rows[at] === undefined)
  const shown = visible?.split(',').map((name) => name.trim())
  const gpus = rows.flatMap((row) => {
    if (row === undefined) return []
    const { uuid, ...gpu } = row
    const isShown =
      shown === undefined ||
      shown.some((name) => name === String(gpu.index) || (name !== '' && uuid.startsWith(name)))
    return isShown ? [gpu] : []
  })
  return broken === undefined ? { gpus } : { gpus, trouble: `nvidia-smi reports for a GPU: ${broken.trim()}` }
}

/** `0, GPU-6f2b..., Tesla V100-SXM2-16GB, 16160`; a name may contain commas, and a lost GPU has words instead of numbers. */
function parseRow(line: string): (Gpu & { uuid: string }) | undefined {
  const match = /^(\d+) *, *([^\s,]+) *,(.+), *(\d+)(?: *MiB)?$/.exec(line.trim())
  if (match === null) return undefined
  const [, index, uuid, name, memoryMiB] = match
  const accelerator = findAccelerator(name!.trim())?.name ?? name!.trim().replace(/^NVIDIA /, '')
  return { index: Number(index), uuid: uuid!, accelerator, memoryGiB: Number(memoryMiB) / 1024 }
}
