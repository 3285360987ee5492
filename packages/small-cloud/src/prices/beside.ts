/** Prices of disks and addresses in us-east-1; used for all regions here. */
export const DISK_USD = { perGiBMonth: 0.08, perMibpsMonth: 0.04, perIopsMonth: 0.005 }
/** A billing month has thirty days. */
export const HOURS_PER_MONTH = 720
/** Price of a public IPv4 address. */
export const ADDRESS_USD_PER_HOUR = 0.005
