/** Modal's GPUs, by the names that it takes (modal.com/docs/guide/gpu, read in November 2026). */

import type { ResourceRequest } from '../../core/resources'

export interface ModalGpu {
  /** Modal's name of the GPU. */
  name: string
  /** Canonical name (`core/accelerators.ts`). */
  accelerator: string
  /** Memory as the driver reports it. */
  memoryGiB: number
  /** Name of the workspace's rate: the price of one for an hour. */
  rate: string
  /** The most that one machine has. */
  countMax: 4 | 8
  /** A larger one that Modal may give at the same price. */
  larger?: {
    accelerator: string
    /** Name of this one or the larger. */
    name: string
    /** Whether it suits every job; not if programs for this one may fail there. */
    isForAll: boolean
  }
}

const gpu = (
  name: string,
  accelerator: string,
  rest: Omit<ModalGpu, 'name' | 'accelerator' | 'countMax'> & Partial<ModalGpu>,
): ModalGpu => ({ name, accelerator, countMax: 8, ...rest })

export const MODAL_GPUS: readonly ModalGpu[] = [
  gpu('T4', 'T4', { memoryGiB: 15, rate: 'gpu_hour_cost_t4' }),
  gpu('L4', 'L4', { memoryGiB: 22.5, rate: 'gpu_hour_cost_l4' }),
  gpu('A10', 'A10G', { memoryGiB: 22.5, rate: 'gpu_hour_cost_a10g', countMax: 4 }),
  gpu('L40S', 'L40S', { memoryGiB: 45, rate: 'gpu_hour_cost_l40s' }),
  gpu('A100-40GB', 'A100', { memoryGiB: 40, rate: 'gpu_hour_cost_a100_40gb' }),
  gpu('A100-80GB', 'A100-80GB', { memoryGiB: 80, rate: 'gpu_hour_cost_a100_80gb' }),
  gpu('RTX-PRO-6000', 'RTXPRO6000', { memoryGiB: 95.6, rate: 'gpu_hour_cost_rtx_pro_6000' }),
  gpu('H100', 'H100', {
    memoryGiB: 79.6,
    rate: 'gpu_hour_cost_h100',
    larger: { accelerator: 'H200', name: 'H100', isForAll: true },
  }),
  gpu('H200', 'H200', { memoryGiB: 140.4, rate: 'gpu_hour_cost_h200' }),
  // A B300 needs CUDA 13.
  gpu('B200', 'B200', {
    memoryGiB: 179,
    rate: 'gpu_hour_cost_b200',
    larger: { accelerator: 'B300', name: 'B200+', isForAll: false },
  }),
]

/** Names with which Modal gives no larger GPU, where they are not the plain ones. */
const EXACT: Readonly<Record<string, string>> = { H100: 'H100!' }

/** Whether a job may get the larger GPU in place of this one. */
export function mayBeLarger(
  { accelerator, larger }: ModalGpu,
  { accelerators = [], gpuMemoryGb }: Pick<ResourceRequest, 'accelerators' | 'gpuMemoryGb'>,
): boolean {
  if (larger === undefined || gpuMemoryGb?.max !== undefined) return false
  if (accelerators.length === 0) return larger.isForAll
  return [accelerator, larger.accelerator].every((name) => accelerators.includes(name))
}

/** Modal's name for a number of GPUs: `H100!:2`, `B200+:8`. */
export function gpuRequest({ name, larger }: ModalGpu, count: number, isLargerAccepted: boolean): string {
  return `${isLargerAccepted ? larger!.name : (EXACT[name] ?? name)}:${count}`
}
