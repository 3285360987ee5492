/** The snippets of Python in the documents that describe `truffle` to people, as they are written there. */

/** "ML Capacity Reservations: Complete Guide" */
export const GUIDE = {
  checkBlocks: `
from truffle import Truffle, ReservationType

tf = Truffle()

# Check training capacity blocks
blocks = tf.capacity(
    instance_types=["p5.48xlarge"],
    reservation_type=ReservationType.CAPACITY_BLOCKS,
    regions=["us-east-1"]
)

for block in blocks:
    print(f"Capacity Block: {block.capacity_block_id}")
    print(f"  Instances: {block.instance_count}x {block.instance_type}")
    print(f"  Duration: {block.duration_hours} hours ({block.duration_hours // 24} days)")
    print(f"  Period: {block.start_date} to {block.end_date}")
    print(f"  UltraCluster: {block.ultra_cluster_placement}")
`,
  checkOdcrs: `
# Check inference capacity (ODCRs)
capacity = tf.capacity(
    instance_types=["inf2.xlarge", "g6.xlarge"],
    reservation_type=ReservationType.ODCR,
    available_only=True,
    min_capacity=10
)

for c in capacity:
    print(f"ODCR: {c.reservation_id}")
    print(f"  Instance: {c.instance_type}")
    print(f"  Available: {c.available_capacity}/{c.total_capacity}")
    print(f"  Location: {c.availability_zone}")
`,
  validateTraining: `
def validate_training_capacity(instance_type: str, count: int, duration_days: int):
    """Check if we have capacity for training"""
    
    # Check Capacity Blocks (preferred for training)
    blocks = tf.capacity(
        instance_types=[instance_type],
        reservation_type=ReservationType.CAPACITY_BLOCKS
    )
    
    for block in blocks:
        block_days = block.duration_hours // 24
        if (block.instance_count >= count and 
            block_days >= duration_days and
            block.state in ["scheduled", "active"]):
            print(f"✅ Capacity Block available:")
            print(f"   {block.instance_count} instances for {block_days} days")
            print(f"   UltraCluster networking enabled")
            return True
    
    # Fallback to ODCRs
    odcrs = tf.capacity(
        instance_types=[instance_type],
        reservation_type=ReservationType.ODCR,
        min_capacity=count,
        available_only=True
    )
    
    if odcrs:
        print(f"⚠️  No Capacity Block found")
        print(f"✅ ODCR available: {odcrs[0].available_capacity} instances")
        print(f"   Note: Standard networking (not UltraCluster)")
        return True
    
    print(f"❌ No capacity available!")
    print(f"   Create Capacity Block or ODCR for {instance_type}")
    return False

# Before training
if validate_training_capacity("p5.48xlarge", 32, 7):
    print("Ready to train!")
`,
} as const

/** "ML Capacity Types + Python Bindings" */
export const TYPES = {
  basicUsage: `
from truffle import Truffle, ReservationType

tf = Truffle()

# Search instances
results = tf.search("m7i.large", regions=["us-east-1"])

# Get Spot pricing
spots = tf.spot("m8g.*", max_price=0.10, sort_by_price=True)

# Check Capacity Blocks (for TRAINING)
blocks = tf.capacity(
    instance_types=["p5.48xlarge"],
    reservation_type=ReservationType.CAPACITY_BLOCKS
)

# Check ODCRs (for INFERENCE)
capacity = tf.capacity(
    gpu_only=True,
    available_only=True,
    reservation_type=ReservationType.ODCR
)
`,
  fullApi: `
class Truffle:
    # Instance search
    def search(pattern, regions, architecture, min_vcpus, min_memory)
    
    # AZ-centric search
    def az(pattern, regions, min_az_count, azs)
    
    # Spot pricing
    def spot(pattern, regions, max_price, show_savings, sort_by_price)
    
    # ML capacity (both types!)
    def capacity(
        instance_types,
        regions,
        reservation_type,  # CAPACITY_BLOCKS or ODCR
        gpu_only,
        available_only,
        min_capacity
    )
`,
  trainLlm: `
# Check training capacity
blocks = tf.capacity(
    instance_types=["p5.48xlarge"],
    reservation_type=ReservationType.CAPACITY_BLOCKS,
    regions=["us-east-1"]
)

for block in blocks:
    if block.instance_count >= 32 and block.duration_hours >= 240:
        print(f"✅ Capacity Block: {block.capacity_block_id}")
        print(f"   {block.instance_count}x H100 GPUs")
        print(f"   UltraCluster: {block.ultra_cluster_placement}")
        print(f"   Period: {block.start_date} to {block.end_date}")
        # Book this block!
`,
  inferenceApi: `
# Check inference capacity
capacity = tf.capacity(
    instance_types=["inf2.xlarge"],
    reservation_type=ReservationType.ODCR,
    available_only=True,
    min_capacity=100  # Need 100 for peak load
)

if capacity:
    c = capacity[0]
    print(f"✅ ODCR: {c.reservation_id}")
    print(f"   Available: {c.available_capacity} instances")
    print(f"   Location: {c.availability_zone}")
    # Deploy inference API
`,
  canTrain: `
def can_train(instance_type, count, duration_days):
    """Validate capacity before expensive training"""
    
    # Check Capacity Blocks first (preferred for training)
    blocks = tf.capacity(
        instance_types=[instance_type],
        reservation_type=ReservationType.CAPACITY_BLOCKS
    )
    
    for block in blocks:
        if (block.instance_count >= count and
            block.duration_hours >= duration_days * 24 and
            block.state in ["scheduled", "active"]):
            print(f"✅ Capacity Block found!")
            print(f"   {block.instance_count} instances")
            print(f"   UltraCluster networking")
            return True
    
    # Fallback to ODCRs (not ideal but works)
    odcrs = tf.capacity(
        instance_types=[instance_type],
        reservation_type=ReservationType.ODCR,
        min_capacity=count,
        available_only=True
    )
    
    if odcrs:
        print(f"⚠️  ODCR found (no Capacity Block)")
        print(f"   {odcrs[0].available_capacity} instances")
        print(f"   Standard networking (not UltraCluster)")
        return True
    
    print(f"❌ No capacity!")
    print(f"   Create Capacity Block for {instance_type}")
    return False

# Before $100k training run
if can_train("p5.48xlarge", 32, 7):
    start_training()
else:
    create_capacity_block()
`,
  commandReference: `
# Training capacity
blocks = tf.capacity(
    instance_types=["p5.48xlarge"],
    reservation_type=ReservationType.CAPACITY_BLOCKS
)

# Inference capacity
capacity = tf.capacity(
    instance_types=["inf2.xlarge"],
    reservation_type=ReservationType.ODCR,
    available_only=True
)
`,
  getStarted: `
from truffle import Truffle, ReservationType

tf = Truffle()

# Training
blocks = tf.capacity(
    instance_types=["p5.48xlarge"],
    reservation_type=ReservationType.CAPACITY_BLOCKS
)

# Inference
capacity = tf.capacity(
    gpu_only=True,
    reservation_type=ReservationType.ODCR,
    available_only=True
)
`,
} as const
