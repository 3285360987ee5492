/** Day on which the prices were read. */
export const LAMBDA_READ_DAY = '2026-09-20'

/** Instance types of Lambda, as its API listed them; prices from public transcriptions of the API's answers. */
export interface LambdaType {
  name: string
  /** GPU as in the API: `H100 (80 GB PCIe)`. */
  gpu: string
  gpus: number
  vcpus: number
  memoryGiB: number
  storageGiB: number
  centsPerHour: number
  regions: readonly string[]
}

type Row = readonly [
  gpu: string,
  gpus: number,
  vcpus: number,
  memoryGiB: number,
  storageGiB: number,
  cents: number,
]

const ROWS: Readonly<Record<string, readonly [Row, readonly string[]]>> = {
  gpu_1x_a10: [
    ['A10 (24 GB PCIe)', 1, 30, 200, 1400, 129],
    ['us-east-1', 'us-west-1'],
  ],
  gpu_1x_a6000: [['RTX A6000 (48 GB)', 1, 14, 100, 512, 109], ['us-south-1']],
  gpu_1x_a100_sxm4: [
    ['A100 (40 GB SXM4)', 1, 30, 200, 512, 199],
    ['us-west-2', 'us-east-1'],
  ],
  gpu_8x_a100_80gb_sxm4: [['A100 (80 GB SXM4)', 8, 240, 1800, 20480, 2232], ['us-midwest-1']],
  gpu_8x_v100: [['Tesla V100 (16 GB)', 8, 92, 448, 5939, 632], ['us-south-1']],
  gpu_1x_rtx6000: [['Quadro RTX 6000 (24 GB)', 1, 14, 46, 512, 69], ['us-south-1']],
  gpu_1x_gh200: [['GH200 (96 GB)', 1, 64, 432, 4096, 229], ['us-east-3']],
  gpu_1x_h100_pcie: [
    ['H100 (80 GB PCIe)', 1, 26, 200, 1024, 329],
    ['us-west-3', 'us-west-1'],
  ],
  gpu_1x_h100_sxm5: [
    ['H100 (80 GB SXM5)', 1, 26, 225, 2816, 429],
    ['us-south-2', 'us-south-3'],
  ],
  gpu_8x_h100_sxm5: [['H100 (80 GB SXM5)', 8, 208, 1800, 22528, 3192], ['us-south-2']],
  gpu_1x_b200_sxm6: [['B200 (180 GB SXM6)', 1, 26, 360, 2816, 699], ['us-south-3']],
}

export const LAMBDA_TYPES: readonly LambdaType[] = Object.entries(ROWS).map(([name, [row, regions]]) => {
  const [gpu, gpus, vcpus, memoryGiB, storageGiB, centsPerHour] = row
  return { name, gpu, gpus, vcpus, memoryGiB, storageGiB, centsPerHour, regions }
})

/** Regions with their descriptions. */
export const LAMBDA_REGIONS: Readonly<Record<string, string>> = {
  'us-east-1': 'Virginia, USA',
  'us-east-3': 'Washington DC, USA',
  'us-midwest-1': 'Illinois, USA',
  'us-south-1': 'Texas, USA',
  'us-south-2': 'North Texas, USA',
  'us-south-3': 'Central Texas, USA',
  'us-west-1': 'California, USA',
  'us-west-2': 'Arizona, USA',
  'us-west-3': 'Utah, USA',
}
