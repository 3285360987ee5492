/** Modal's GPUs, by the names that it takes (modal.com/docs/guide/gpu, read in November 2026). */

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
  /** Modal may give a larger one at the same price unless the name ends with `!`. */
  isUpgraded: boolean
}

const gpu = (
  name: string,
  accelerator: string,
  rest: Omit<ModalGpu, 'name' | 'accelerator' | 'countMax' | 'isUpgraded'> & Partial<ModalGpu>,
): ModalGpu => ({ name, accelerator, countMax: 8, isUpgraded: false, ...rest })

export const MODAL_GPUS: readonly ModalGpu[] = [
  gpu('T4', 'T4', { memoryGiB: 15, rate: 'gpu_hour_cost_t4' }),
  gpu('L4', 'L4', { memoryGiB: 22.5, rate: 'gpu_hour_cost_l4' }),
  gpu('A10', 'A10G', { memoryGiB: 22.5, rate: 'gpu_hour_cost_a10g', countMax: 4 }),
  gpu('L40S', 'L40S', { memoryGiB: 45, rate: 'gpu_hour_cost_l40s' }),
  gpu('A100-40GB', 'A100', { memoryGiB: 40, rate: 'gpu_hour_cost_a100_40gb' }),
  gpu('A100-80GB', 'A100-80GB', { memoryGiB: 80, rate: 'gpu_hour_cost_a100_80gb' }),
  gpu('RTX-PRO-6000', 'RTXPRO6000', { memoryGiB: 95.6, rate: 'gpu_hour_cost_rtx_pro_6000' }),
  gpu('H100', 'H100', { memoryGiB: 79.6, rate: 'gpu_hour_cost_h100', isUpgraded: true }),
  gpu('H200', 'H200', { memoryGiB: 140.4, rate: 'gpu_hour_cost_h200' }),
  gpu('B200', 'B200', { memoryGiB: 179, rate: 'gpu_hour_cost_b200' }),
]

/** Modal's name for a number of GPUs: `H100!:2`. `isExact` refuses an upgrade. */
export function gpuRequest({ name, isUpgraded }: ModalGpu, count: number, isExact: boolean): string {
  return `${name}${isUpgraded && isExact ? '!' : ''}:${count}`
}
