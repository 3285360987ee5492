/** Month in which the rates were read. */
export const MODAL_RATES_DAY = '2026-10-01'

/** Modal's rates in USD per hour, by the names of `Workspace.billing.rates()`, as workspaces reported them. */
export const MODAL_RATES: Readonly<Record<string, string>> = {
  cpu_hour_cost: '0.0473',
  mem_gib_hour_cost: '0.008',
  cpu_hour_cost_sandbox: '0.1419',
  mem_gib_hour_cost_sandbox: '0.024',
  gpu_hour_cost_t4: '0.59',
  gpu_hour_cost_l4: '0.80',
  gpu_hour_cost_a10g: '1.10',
  gpu_hour_cost_l40s: '1.95',
  gpu_hour_cost_a100_40gb: '2.10',
  gpu_hour_cost_a100_80gb: '2.50',
  gpu_hour_cost_rtx_pro_6000: '3.03',
  gpu_hour_cost_h100: '3.95',
  gpu_hour_cost_h200: '4.54',
  gpu_hour_cost_b200: '6.25',
}

interface GpuModel {
  /** The last part of its rate's name. */
  rate: string
  /** Name in the driver. */
  driverName: string
  memoryMiB: number
}

/** The GPUs by Modal's names. */
export const MODAL_GPUS: Readonly<Record<string, GpuModel>> = {
  T4: { rate: 't4', driverName: 'Tesla T4', memoryMiB: 15_360 },
  L4: { rate: 'l4', driverName: 'NVIDIA L4', memoryMiB: 23_034 },
  A10: { rate: 'a10g', driverName: 'NVIDIA A10G', memoryMiB: 23_028 },
  A10G: { rate: 'a10g', driverName: 'NVIDIA A10G', memoryMiB: 23_028 },
  L40S: { rate: 'l40s', driverName: 'NVIDIA L40S', memoryMiB: 46_068 },
  A100: { rate: 'a100_40gb', driverName: 'NVIDIA A100-SXM4-40GB', memoryMiB: 40_960 },
  'A100-40GB': { rate: 'a100_40gb', driverName: 'NVIDIA A100-SXM4-40GB', memoryMiB: 40_960 },
  'A100-80GB': { rate: 'a100_80gb', driverName: 'NVIDIA A100 80GB PCIe', memoryMiB: 81_920 },
  'RTX-PRO-6000': {
    rate: 'rtx_pro_6000',
    driverName: 'NVIDIA RTX PRO 6000 Blackwell Server Edition',
    memoryMiB: 97_887,
  },
  H100: { rate: 'h100', driverName: 'NVIDIA H100 80GB HBM3', memoryMiB: 81_559 },
  H200: { rate: 'h200', driverName: 'NVIDIA H200', memoryMiB: 143_771 },
  B200: { rate: 'b200', driverName: 'NVIDIA B200', memoryMiB: 183_359 },
}

/** Returns a Sandbox's price in USD per hour: GPUs, requested cores and requested memory, with cores and memory at the rates of Sandboxes. */
export function usdPerHourOf({
  gpu,
  milliCpu,
  memoryMiB,
}: {
  gpu: { type: string; count: number } | null
  milliCpu: number
  memoryMiB: number
}): number {
  const rate = (name: string): number => Number(MODAL_RATES[name])
  const model = gpu === null ? undefined : MODAL_GPUS[gpuName(gpu.type)]
  return (
    (milliCpu / 1000) * rate('cpu_hour_cost_sandbox') +
    (memoryMiB / 1024) * rate('mem_gib_hour_cost_sandbox') +
    (model === undefined ? 0 : gpu!.count * rate(`gpu_hour_cost_${model.rate}`))
  )
}

/** Returns the name without its mark: `!` refuses a larger GPU, `+` accepts one. */
export function gpuName(type: string): string {
  return type.replace(/[!+]$/, '').toUpperCase()
}
