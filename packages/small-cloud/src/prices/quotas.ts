/** Service quotas of EC2, in vCPUs. */
import type { CapacityType } from '../world/schema'
import type { QuotaFamily } from '../world/types'

export interface Quota {
  name: string
  /** Default quota of an account. Real new accounts often have 0 of the accelerated ones. */
  usual: number
}

/** Quota codes seen in several public repositories, November 2026. */
export const QUOTAS: Readonly<Record<string, Quota>> = {
  'L-1216C47A': { name: 'Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances', usual: 1152 },
  'L-DB2E81BA': { name: 'Running On-Demand G and VT instances', usual: 768 },
  'L-417A185B': { name: 'Running On-Demand P instances', usual: 768 },
  'L-1945791B': { name: 'Running On-Demand Inf instances', usual: 768 },
  'L-2C3B7624': { name: 'Running On-Demand Trn instances', usual: 768 },
  'L-34B43A08': { name: 'All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests', usual: 1152 },
  'L-3819A6DF': { name: 'All G and VT Spot Instance Requests', usual: 768 },
  'L-7212CCBC': { name: 'All P Spot Instance Requests', usual: 768 },
  'L-B5D1601B': { name: 'All Inf Spot Instance Requests', usual: 768 },
  'L-6B0D517C': { name: 'All Trn Spot Instance Requests', usual: 768 },
}

const CODES: Readonly<Record<CapacityType, Readonly<Record<QuotaFamily, string>>>> = {
  'on-demand': {
    standard: 'L-1216C47A',
    'g-vt': 'L-DB2E81BA',
    p: 'L-417A185B',
    inf: 'L-1945791B',
    trn: 'L-2C3B7624',
  },
  spot: {
    standard: 'L-34B43A08',
    'g-vt': 'L-3819A6DF',
    p: 'L-7212CCBC',
    inf: 'L-B5D1601B',
    trn: 'L-6B0D517C',
  },
}

export function quotaOf(family: QuotaFamily, capacity: CapacityType): string {
  return CODES[capacity][family]
}
