/** What is billed beside machines, as AWS bills it in us-east-1; here everywhere. */
export const DISK_USD_PER_GIB_MONTH = 0.08
/** Months have thirty days. */
export const HOURS_PER_MONTH = 720
/** Of a public IPv4 address. */
export const ADDRESS_USD_PER_HOUR = 0.005
