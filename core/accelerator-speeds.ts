// Made by tools/gen-speeds.mjs; do not edit.
import type { RelativeSpeed } from './speed'

/**
 * Training speed in mixed precision relative to an A100-PCIe: of ten models, nine are between `low` and `high`.
 *
 * Measured: github.com/lambdal/deeplearning-benchmark, pytorch/pytorch-train-throughput-fp16.csv at commit 0551cb70ffdc, read 2026-11-22.
 *
 * Derived from them by throughput and memory bandwidth: As NVIDIA and AWS state them. Compared in November 2026 with the AWS Neuron documentation (Trainium, Inferentia) and with public tables of GPU specifications, which differ by up to 4 %.
 */
export const ACCELERATOR_SPEEDS: Readonly<Record<string, RelativeSpeed>> = {
  K80: { factor: 0.119, low: 0.08, high: 0.177, basis: 'derived' },
  P100: { factor: 0.337, low: 0.227, high: 0.5, basis: 'derived' },
  V100: { factor: 0.454, low: 0.254, high: 0.81, basis: 'measured' },
  'V100-32GB': { factor: 0.454, low: 0.254, high: 0.81, basis: 'derived' },
  T4: { factor: 0.267, low: 0.18, high: 0.397, basis: 'derived' },
  T4G: { factor: 0.267, low: 0.18, high: 0.397, basis: 'derived' },
  M60: { factor: 0.0951, low: 0.064, high: 0.141, basis: 'derived' },
  A10: { factor: 0.405, low: 0.329, high: 0.498, basis: 'measured' },
  A10G: { factor: 0.397, low: 0.267, high: 0.589, basis: 'derived' },
  L4: { factor: 0.298, low: 0.2, high: 0.443, basis: 'derived' },
  L40S: { factor: 0.808, low: 0.6, high: 1.09, basis: 'derived' },
  RTX3090: { factor: 0.551, low: 0.397, high: 0.766, basis: 'measured' },
  RTX4090: { factor: 0.89, low: 0.725, high: 1.09, basis: 'measured' },
  RTX6000: { factor: 0.437, low: 0.271, high: 0.705, basis: 'derived' },
  RTX8000: { factor: 0.437, low: 0.271, high: 0.705, basis: 'measured' },
  RTXA6000: { factor: 0.641, low: 0.536, high: 0.768, basis: 'measured' },
  RTX6000Ada: { factor: 0.861, low: 0.64, high: 1.16, basis: 'measured' },
  RTXPRO4500: { factor: 0.661, low: 0.445, high: 0.983, basis: 'derived' },
  RTXPRO6000: { factor: 1.14, low: 0.766, high: 1.69, basis: 'derived' },
  A100: { factor: 1, low: 0.746, high: 1.34, basis: 'derived' },
  'A100-PCIe': { factor: 1, low: 1, high: 1, basis: 'measured' },
  'A100-80GB': { factor: 1.2, low: 0.879, high: 1.62, basis: 'measured' },
  'A100-80GB-PCIe': { factor: 1.14, low: 0.831, high: 1.56, basis: 'measured' },
  H100: { factor: 2, low: 1.44, high: 2.79, basis: 'measured' },
  'H100-PCIe': { factor: 1.4, low: 1, high: 1.97, basis: 'measured' },
  GH200: { factor: 2.23, low: 1.6, high: 3.1, basis: 'derived' },
  H200: { factor: 2.49, low: 1.79, high: 3.46, basis: 'derived' },
  B200: { factor: 4.26, low: 2.87, high: 6.34, basis: 'derived' },
  B300: { factor: 4.26, low: 2.87, high: 6.34, basis: 'derived' },
  Trainium: { factor: 0.606, low: 0.408, high: 0.9, basis: 'derived' },
  Trainium2: { factor: 1.74, low: 1.17, high: 2.58, basis: 'derived' },
  Inferentia2: { factor: 0.606, low: 0.408, high: 0.9, basis: 'derived' },
}
